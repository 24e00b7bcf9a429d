-- A new day; late: member 2 once more and member 3 for the first time, a new title, and a day nobody has seen.
INSERT INTO lake.media.playback VALUES
  (DATE'2026-11-03', 'Ran', 1), (DATE'2026-11-03', 'Ran', 1),
  (DATE'2026-11-01', 'Ran', 2), (DATE'2026-11-01', 'Ran', 3), (DATE'2026-11-02', 'Mirror', 4),
  (DATE'2026-10-01', 'Ran', 9);
