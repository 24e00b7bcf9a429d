SELECT id, event_day, seconds
FROM lake.media.playback
