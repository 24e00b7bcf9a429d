-- <=> takes two NULLs for the same; IN and = would pass over groups without a day or a title.
MERGE INTO lake.media.titles_by_day t
USING (
  SELECT event_day AS day, title, count(*) AS plays, count(DISTINCT member) AS members
  FROM lake.media.playback VERSION AS OF ${capture.upto_snapshot} p
  LEFT SEMI JOIN ${capture.change_table} c ON c.event_day <=> p.event_day AND c.title <=> p.title
  WHERE ${capture.partition_filter('p')}
  GROUP BY event_day, title
) s
ON t.day <=> s.day AND t.title <=> s.title AND ${capture.partition_filter('t', 'event_day=day')}
WHEN MATCHED THEN UPDATE SET *
WHEN NOT MATCHED THEN INSERT *
