-- Plays, seconds and viewers by day, country and type of device.
SELECT event_day, country, device_type, COUNT(*) AS plays, COUNT_IF(is_finished) AS finished,
  SUM(seconds) AS seconds, COUNT(DISTINCT profile_id) AS viewers
FROM ${daily}
GROUP BY event_day, country, device_type
