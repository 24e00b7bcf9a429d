CREATE NAMESPACE IF NOT EXISTS lake.media;

CREATE TABLE lake.media.playback
  (id BIGINT, event_day DATE, version INT, title STRING, member BIGINT, cancelled BOOLEAN)
USING iceberg PARTITIONED BY (event_day);

CREATE TABLE lake.media.playback_daily
  (id BIGINT, event_day DATE, version INT, title STRING, member BIGINT, cancelled BOOLEAN)
USING iceberg PARTITIONED BY (event_day);

CREATE TABLE lake.media.playback_daily_agg (event_day DATE, title STRING, plays BIGINT, members BIGINT)
USING iceberg PARTITIONED BY (event_day);

INSERT INTO lake.media.playback VALUES
  (1, DATE'2026-11-01', 1, 'Ran', 1, false), (2, DATE'2026-11-01', 1, 'Ran', 2, false),
  (3, DATE'2026-11-01', 1, 'Miror', 1, false), (4, DATE'2026-11-02', 1, 'Ran', 1, false),
  (5, DATE'2026-11-02', 1, 'Solaris', 3, false), (5, DATE'2026-11-02', 1, 'Solaris', 3, false);
