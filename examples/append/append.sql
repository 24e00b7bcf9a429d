INSERT INTO lake.media.playback_clean
SELECT id, event_day, upper(country) AS country, seconds / 60 AS minutes
FROM ${capture.change_table}
WHERE seconds > 0
