-- Groups that lost all of their rows are among the changed ones, and nothing is found for them.
MERGE INTO lake.media.playback_daily_agg t
USING (
  SELECT event_day, title, count(id) AS plays, count(DISTINCT member) AS members
  FROM ${capture.changes_view}
  LEFT JOIN (
    SELECT * FROM lake.media.playback_daily VERSION AS OF ${capture.upto_snapshot}
    WHERE ${capture.partition_filter} AND NOT cancelled
  ) USING (event_day, title)
  GROUP BY event_day, title
) s
ON t.event_day = s.event_day AND t.title = s.title AND ${capture.partition_filter('t')}
WHEN MATCHED AND s.plays = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET *
WHEN NOT MATCHED AND s.plays > 0 THEN INSERT *
