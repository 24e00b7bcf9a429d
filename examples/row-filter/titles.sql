MERGE INTO lake.media.titles_by_day t
USING (
  SELECT event_day AS day, title, count(*) AS plays, count(DISTINCT member) AS members
  FROM lake.media.playback VERSION AS OF ${capture.upto_snapshot}
  WHERE ${capture.partition_filter}
    AND (event_day, title) IN (SELECT event_day, title FROM ${capture.change_table})
  GROUP BY event_day, title
) s
ON t.day = s.day AND t.title = s.title AND ${capture.partition_filter('t', 'event_day=day')}
WHEN MATCHED THEN UPDATE SET *
WHEN NOT MATCHED THEN INSERT *
