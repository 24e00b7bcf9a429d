INSERT INTO lake.media.seconds_by_day REPLACE WHERE ${capture.partition_filter}
SELECT event_day, sum(seconds) AS seconds
FROM lake.media.playback VERSION AS OF ${capture.upto_snapshot}
WHERE ${capture.partition_filter}
GROUP BY event_day
