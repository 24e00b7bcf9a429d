WITH expected AS (
  SELECT event_day, title, count(*), count(DISTINCT member) FROM lake.media.playback GROUP BY event_day, title
), found AS (SELECT * FROM lake.media.titles_by_day)
SELECT assert_true(count(*) = 0, concat(count(*), ' rows are not as a full computation gives them'))
FROM ((SELECT * FROM expected EXCEPT ALL SELECT * FROM found)
  UNION ALL (SELECT * FROM found EXCEPT ALL SELECT * FROM expected))
