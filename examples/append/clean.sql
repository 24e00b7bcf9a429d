SELECT id, event_day, upper(country) AS country, seconds / 60 AS minutes
FROM lake.media.playback
WHERE seconds > 0
