CREATE NAMESPACE IF NOT EXISTS lake.media;

CREATE TABLE lake.media.playback (id BIGINT, event_day DATE, country STRING, seconds BIGINT)
USING iceberg PARTITIONED BY (event_day);

CREATE TABLE lake.media.playback_clean (id BIGINT, event_day DATE, country STRING, minutes DOUBLE)
USING iceberg PARTITIONED BY (event_day);

INSERT INTO lake.media.playback VALUES
  (1, DATE'2026-11-01', 'at', 600), (2, DATE'2026-11-01', 'de', 0), (3, DATE'2026-11-02', 'de', 90);
