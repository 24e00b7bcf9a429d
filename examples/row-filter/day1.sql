CREATE NAMESPACE IF NOT EXISTS lake.media;

CREATE TABLE lake.media.playback (event_day DATE, title STRING, member BIGINT)
USING iceberg PARTITIONED BY (event_day);

CREATE TABLE lake.media.titles_by_day (day DATE, title STRING, plays BIGINT, members BIGINT)
USING iceberg PARTITIONED BY (day);

INSERT INTO lake.media.playback VALUES
  (DATE'2026-11-01', 'Ran', 1), (DATE'2026-11-01', 'Ran', 2), (DATE'2026-11-01', 'Mirror', 1),
  (DATE'2026-11-02', 'Ran', 1), (DATE'2026-11-02', 'Solaris', 3);
