-- A new day, and rows that are two and five days late.
INSERT INTO lake.media.playback VALUES
  (DATE'2026-11-21', 1), (DATE'2026-11-21', 70), (DATE'2026-11-19', 70), (DATE'2026-11-16', 71), (DATE'2026-11-16', 71);
