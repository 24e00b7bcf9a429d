MERGE INTO lake.media.seconds_by_day t
USING (
  SELECT event_day, sum(seconds) AS seconds
  FROM ${capture.changes_view}
  LEFT JOIN (
    SELECT * FROM lake.media.playback VERSION AS OF ${capture.upto_snapshot} WHERE ${capture.partition_filter}
  ) USING (event_day)
  GROUP BY event_day
) s
ON t.event_day = s.event_day AND ${capture.partition_filter('t')}
WHEN MATCHED AND s.seconds IS NULL THEN DELETE
WHEN MATCHED THEN UPDATE SET *
WHEN NOT MATCHED AND s.seconds IS NOT NULL THEN INSERT *
