SELECT event_day, title, count(*) AS plays, count(DISTINCT member) AS members
FROM lake.media.playback
GROUP BY event_day, title
