WITH expected AS (
  SELECT * EXCEPT (place) FROM (
    SELECT *, row_number() OVER (PARTITION BY event_day, id ORDER BY version DESC, seconds DESC) AS place
    FROM lake.media.playback
  ) WHERE place = 1
), found AS (SELECT * FROM lake.media.playback_latest)
SELECT assert_true(count(*) = 0, concat(count(*), ' rows are not as a full computation gives them'))
FROM ((SELECT * FROM expected EXCEPT ALL SELECT * FROM found)
  UNION ALL (SELECT * FROM found EXCEPT ALL SELECT * FROM expected))
