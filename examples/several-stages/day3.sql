-- Cancelled: one of several events of a group, and the only event of another.
INSERT INTO lake.media.playback VALUES
  (2, DATE'2026-11-01', 2, 'Ran', 2, true), (5, DATE'2026-11-02', 2, 'Solaris', 3, true);
