SELECT id, event_day, version, seconds FROM (
  SELECT *, row_number() OVER (PARTITION BY event_day, id ORDER BY version DESC, seconds DESC) AS place
  FROM lake.media.playback
) WHERE place = 1
