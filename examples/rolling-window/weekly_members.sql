SELECT last_day, count(*) AS plays, count(DISTINCT member) AS members
FROM lake.media.declared_windows
GROUP BY last_day
HAVING max(event_day) = last_day
