WITH expected AS (
  SELECT DISTINCT p.* FROM lake.media.playback p
  WHERE version = (SELECT max(version) FROM lake.media.playback WHERE event_day = p.event_day AND id = p.id)
), found AS (SELECT * FROM lake.media.playback_latest)
SELECT assert_true(count(*) = 0, concat(count(*), ' rows are not as a full computation gives them'))
FROM ((SELECT * FROM expected EXCEPT ALL SELECT * FROM found)
  UNION ALL (SELECT * FROM found EXCEPT ALL SELECT * FROM expected))
