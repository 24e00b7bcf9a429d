SELECT id, event_day, version, title, member, cancelled FROM (
  SELECT *, row_number() OVER (
    PARTITION BY event_day, id ORDER BY version DESC, title DESC, member DESC, cancelled DESC) AS place
  FROM lake.media.playback
) WHERE place = 1
