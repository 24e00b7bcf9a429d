CREATE NAMESPACE IF NOT EXISTS lake.media;

CREATE TABLE lake.media.playback (event_day DATE, member BIGINT) USING iceberg PARTITIONED BY (event_day);

CREATE TABLE lake.media.weekly_members (last_day DATE, plays BIGINT, members BIGINT)
USING iceberg PARTITIONED BY (last_day);

-- Twenty days, on each of which other members watch something.
INSERT INTO lake.media.playback
SELECT date_add(DATE'2026-11-01', CAST(id AS INT) % 20), id % 7 + id % 3 FROM range(60);
