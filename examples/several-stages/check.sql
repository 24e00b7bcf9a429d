WITH latest AS (
  SELECT DISTINCT p.* FROM lake.media.playback p
  WHERE version = (SELECT max(version) FROM lake.media.playback WHERE event_day = p.event_day AND id = p.id)
), expected AS (
  SELECT event_day, title, count(*), count(DISTINCT member) FROM latest WHERE NOT cancelled GROUP BY event_day, title
), found AS (SELECT * FROM lake.media.playback_daily_agg)
SELECT assert_true(count(*) = 0, concat(count(*), ' rows are not as a full computation gives them'))
FROM ((SELECT * FROM expected EXCEPT ALL SELECT * FROM found)
  UNION ALL (SELECT * FROM found EXCEPT ALL SELECT * FROM expected))
