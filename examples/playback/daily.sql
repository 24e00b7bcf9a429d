-- Each event once, whenever and how often it was delivered; parsed, with its title and device.
SELECT event_id, event_day, event.profile_id, event.title_id, genre, event.country, device_type,
  LEAST(event.watched, runtime) AS seconds, event.watched >= 0.9 * runtime AS is_finished
FROM (
  SELECT event_id, event_day,
    ROW_NUMBER() OVER (PARTITION BY event_day, event_id ORDER BY received_at, payload) AS delivery,
    FROM_JSON(payload,
      'profile_id BIGINT, title_id INT, country STRING, device STRUCT<id: INT>, watched INT') AS event
  FROM ${playback}
)
JOIN lake.media.titles ON titles.title_id = event.title_id
JOIN lake.media.devices ON device_id = event.device.id
WHERE delivery = 1
