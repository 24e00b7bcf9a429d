SELECT event_day, title, count(*) AS plays, count(DISTINCT member) AS members
FROM lake.media.declared_playback_daily
WHERE NOT cancelled
GROUP BY event_day, title
