-- Overnight the source got a column that nobody told us of; a row is a day late.
ALTER TABLE lake.media.playback ADD COLUMN device STRING;
INSERT INTO lake.media.playback VALUES (3, DATE'2026-11-03', 30, 'tv'), (4, DATE'2026-11-02', 45, 'phone');
