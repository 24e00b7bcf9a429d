WITH latest AS (
  SELECT * FROM (
    SELECT *, row_number() OVER (
      PARTITION BY event_day, id ORDER BY version DESC, title DESC, member DESC, cancelled DESC) AS place
    FROM lake.media.playback
  ) WHERE place = 1
), expected AS (
  SELECT event_day, title, count(*), count(DISTINCT member) FROM latest WHERE NOT cancelled GROUP BY event_day, title
), found AS (SELECT * FROM lake.media.playback_daily_agg)
SELECT assert_true(count(*) = 0, concat(count(*), ' rows are not as a full computation gives them'))
FROM ((SELECT * FROM expected EXCEPT ALL SELECT * FROM found)
  UNION ALL (SELECT * FROM found EXCEPT ALL SELECT * FROM expected))
