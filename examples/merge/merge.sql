-- The newest version counts. Of several rows with the same version, the one with the most seconds does.
-- Structs are compared field by field, NULL being the smallest; <=> takes two NULLs for the same.
MERGE INTO lake.media.playback_latest t
USING (
  SELECT newest.* FROM (
    SELECT max(struct(version, seconds, id, event_day)) AS newest FROM ${capture.change_table} GROUP BY event_day, id
  )
) s
ON t.event_day <=> s.event_day AND t.id <=> s.id AND ${capture.partition_filter('t')}
WHEN MATCHED AND struct(s.version, s.seconds) > struct(t.version, t.seconds) THEN UPDATE SET *
WHEN NOT MATCHED THEN INSERT *
