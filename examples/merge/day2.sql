-- A new day; late: event 3 once more, event 1 corrected, an old version of event 2, and event 5 a month after it happened.
INSERT INTO lake.media.playback VALUES
  (4, DATE'2026-11-03', 1, 1200), (4, DATE'2026-11-03', 1, 1200),
  (3, DATE'2026-11-02', 1, 90), (1, DATE'2026-11-01', 2, 610), (2, DATE'2026-11-01', 1, 0),
  (5, DATE'2026-10-01', 1, 300);
