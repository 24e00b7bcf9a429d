CREATE NAMESPACE IF NOT EXISTS lake.media;

CREATE TABLE lake.media.playback (id BIGINT, event_day DATE, seconds BIGINT)
USING iceberg PARTITIONED BY (event_day)
TBLPROPERTIES ('write.merge.mode' = 'copy-on-write', 'write.delete.mode' = 'copy-on-write');

CREATE TABLE lake.media.seconds_by_day (event_day DATE, seconds BIGINT) USING iceberg PARTITIONED BY (event_day);

INSERT INTO lake.media.playback VALUES
  (1, DATE'2026-11-01', 600), (2, DATE'2026-11-01', 30), (3, DATE'2026-11-02', 90), (4, DATE'2026-11-02', 5);
