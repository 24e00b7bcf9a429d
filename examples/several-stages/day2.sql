-- A new day; late: a duplicate, a new event, and a title that is corrected, so that its old group vanishes.
INSERT INTO lake.media.playback VALUES
  (6, DATE'2026-11-03', 1, 'Ran', 1, false), (1, DATE'2026-11-01', 1, 'Ran', 1, false),
  (7, DATE'2026-11-01', 1, 'Ran', 1, false), (3, DATE'2026-11-01', 2, 'Mirror', 1, false);
