CREATE NAMESPACE IF NOT EXISTS lake.media;

CREATE TABLE lake.media.playback (id BIGINT, event_day DATE, version INT, seconds BIGINT)
USING iceberg PARTITIONED BY (event_day);

CREATE TABLE lake.media.playback_latest (id BIGINT, event_day DATE, version INT, seconds BIGINT)
USING iceberg PARTITIONED BY (event_day);

-- Event 1 came twice, event 2 was corrected.
INSERT INTO lake.media.playback VALUES
  (1, DATE'2026-11-01', 1, 600), (1, DATE'2026-11-01', 1, 600),
  (2, DATE'2026-11-01', 1, 0), (2, DATE'2026-11-01', 2, 40), (3, DATE'2026-11-02', 1, 90);
