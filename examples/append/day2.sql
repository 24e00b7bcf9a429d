-- A new day in two writes, a row that is a day late and one that is a month late.
INSERT INTO lake.media.playback VALUES
  (4, DATE'2026-11-03', 'at', 1200), (5, DATE'2026-11-02', 'fr', 30);
INSERT INTO lake.media.playback VALUES
  (6, DATE'2026-11-03', 'fr', 45), (7, DATE'2026-10-01', 'de', 300);
