MERGE INTO lake.media.playback_daily t
USING (
  SELECT latest.* FROM (
    SELECT max_by(struct(*), version) AS latest FROM ${capture.change_table} GROUP BY event_day, id
  )
) s
ON t.event_day = s.event_day AND t.id = s.id AND ${capture.partition_filter('t')}
WHEN MATCHED AND s.version > t.version THEN UPDATE SET *
WHEN NOT MATCHED THEN INSERT *
