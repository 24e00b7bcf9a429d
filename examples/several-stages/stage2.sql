-- The touched days are replaced by what is there now: groups that lost all of their rows are gone.
INSERT INTO lake.media.playback_daily_agg REPLACE WHERE ${capture.partition_filter}
SELECT event_day, title, count(*) AS plays, count(DISTINCT member) AS members
FROM lake.media.playback_daily VERSION AS OF ${capture.upto_snapshot}
WHERE ${capture.partition_filter} AND NOT cancelled
GROUP BY event_day, title
