WITH expected AS (
  SELECT days.event_day, count(*), count(DISTINCT member)
  FROM (SELECT DISTINCT event_day FROM lake.media.playback) days
  JOIN lake.media.playback plays ON plays.event_day BETWEEN date_sub(days.event_day, 6) AND days.event_day
  GROUP BY days.event_day
), found AS (SELECT * FROM lake.media.weekly_members)
SELECT assert_true(count(*) = 0, concat(count(*), ' rows are not as a full computation gives them'))
FROM ((SELECT * FROM expected EXCEPT ALL SELECT * FROM found)
  UNION ALL (SELECT * FROM found EXCEPT ALL SELECT * FROM expected))
