-- A row counts in the windows that end on its day and on the six days after it.
INSERT OVERWRITE lake.media.weekly_members
SELECT days.event_day AS last_day, count(*) AS plays, count(DISTINCT member) AS members
FROM (
  SELECT DISTINCT event_day FROM lake.media.playback VERSION AS OF ${capture.upto_snapshot}
  WHERE event_day BETWEEN DATE'${capture.min_event_day}' AND date_add(DATE'${capture.max_event_day}', 6)
) days
JOIN lake.media.playback VERSION AS OF ${capture.upto_snapshot} plays
  ON plays.event_day BETWEEN date_sub(days.event_day, 6) AND days.event_day
WHERE plays.event_day >= date_sub(DATE'${capture.min_event_day}', 6)
GROUP BY days.event_day
