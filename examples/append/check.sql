WITH expected AS (
  SELECT id, event_day, upper(country) AS country, seconds / 60 AS minutes FROM lake.media.playback WHERE seconds > 0
), found AS (SELECT * FROM lake.media.playback_clean)
SELECT assert_true(count(*) = 0, concat(count(*), ' rows are not as a full computation gives them'))
FROM ((SELECT * FROM expected EXCEPT ALL SELECT * FROM found)
  UNION ALL (SELECT * FROM found EXCEPT ALL SELECT * FROM expected))
