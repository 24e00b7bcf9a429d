WITH expected AS (
  SELECT event_day, sum(seconds) FROM lake.media.playback GROUP BY event_day
), found AS (SELECT * FROM lake.media.seconds_by_day)
SELECT assert_true(count(*) = 0, concat(count(*), ' rows are not as a full computation gives them'))
FROM ((SELECT * FROM expected EXCEPT ALL SELECT * FROM found)
  UNION ALL (SELECT * FROM found EXCEPT ALL SELECT * FROM expected))
