-- A new day; late: a row for each older day, of which one corrects what was there, and one is taken back.
INSERT INTO lake.media.playback VALUES (5, DATE'2026-11-03', 1200), (6, DATE'2026-11-01', 45);
UPDATE lake.media.playback SET seconds = 100 WHERE id = 3;
DELETE FROM lake.media.playback WHERE id = 4;
