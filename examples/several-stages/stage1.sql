-- The newest version counts. Of several rows with the same version, the greatest does, column by column.
MERGE INTO lake.media.playback_daily t
USING (
  SELECT newest.* FROM (
    SELECT max(struct(version, title, member, cancelled, id, event_day)) AS newest
    FROM ${capture.change_table} GROUP BY event_day, id
  )
) s
ON t.event_day <=> s.event_day AND t.id <=> s.id AND ${capture.partition_filter('t')}
WHEN MATCHED AND struct(s.version, s.title, s.member, s.cancelled) > struct(t.version, t.title, t.member, t.cancelled)
  THEN UPDATE SET *
WHEN NOT MATCHED THEN INSERT *
