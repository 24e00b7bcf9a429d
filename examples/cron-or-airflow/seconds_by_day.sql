SELECT event_day, sum(seconds) AS seconds
FROM lake.media.playback
GROUP BY event_day
