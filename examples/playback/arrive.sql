-- Everything follows from the day and the number of an event, so one that is delivered again is the same event.
DECLARE days_late = ARRAY(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 5, 8, 13, 21);
DECLARE countries = ARRAY('US', 'BR', 'IN', 'GB', 'DE', 'FR', 'MX', 'JP', 'KR', 'ES', 'IT', 'CA', 'AU', 'PL', 'TR', 'NL',
  'AR', 'SE', 'CO', 'PH', 'CL', 'NO', 'DK', 'ZA', 'BE', 'CH', 'PT', 'AT', 'FI', 'NZ');

INSERT INTO ${source}
WITH
  -- Each hundredth delivery is the event before it once more, or that of an earlier day.
  deliveries AS (
    SELECT DATE_ADD(DATE'${first_day}', CAST(id DIV ${events} AS INT)) AS day, id % ${events} AS row,
      row % 100 = 99 AS is_again, IF(is_again AND row % 200 = 99, days_late[PMOD(HASH(day, row), 20)], 0) AS delay
    FROM RANGE(${events} * (1 + DATEDIFF(DATE'${last_day}', DATE'${first_day}')))
  ),
  events AS (
    SELECT *, IF(delay <= DATEDIFF(day, DATE'${epoch}'), DATE_SUB(day, delay), day) AS sent_day,
      IF(is_again, row - 1, row) AS number, PMOD(XXHASH64(sent_day, number, 'moment'), 86400000) AS millisecond,
      XXHASH64(sent_day, number) AS random,
      -- Some profiles watch more than others, and some titles are watched a lot more than others.
      CAST(POW(PMOD(XXHASH64(random, 'profile'), 1000000) / 1e6, 2) * ${events} AS BIGINT) AS profile_id,
      CAST(POW(20000, PMOD(XXHASH64(random, 'title'), 1000000) / 1e6) AS INT) AS title_id
    FROM deliveries
  ),
  -- A device that was offline sends its events late.
  sent AS (
    SELECT *, IF(PMOD(HASH(profile_id, sent_day), 50) = 0, days_late[PMOD(HASH(profile_id, sent_day, 'days'), 20)], 0)
        AS wanted_lateness, IF(wanted_lateness <= DATEDIFF(sent_day, DATE'${epoch}'), wanted_lateness, 0) AS lateness,
      DATE_SUB(sent_day, lateness) AS event_day, UNIX_MILLIS(CAST(event_day AS TIMESTAMP)) + millisecond AS began
    FROM events
  )
SELECT SHIFTLEFT(began, 22) + number AS event_id, event_day,
  TIMESTAMP_SECONDS(UNIX_DATE(day) * 86400L + PMOD(XXHASH64(day, row, 'received'), 86400)) AS received_at,
  TO_JSON(NAMED_STRUCT(
    'profile_id', profile_id, 'title_id', title_id, 'country', countries[CAST(POW(30, PMOD(HASH(profile_id), 1000) / 1e3) AS INT) - 1],
    'device', NAMED_STRUCT('id', PMOD(HASH(profile_id, random % 2), 500), 'app', CONCAT('8.', random % 60), 'network', IF(random % 3 = 0, 'mobile', 'wifi')),
    'session', HEX(random), 'began', began, 'watched', PMOD(XXHASH64(random, 'watched'), 7200),
    'audio', IF(random % 7 = 0, 'original', 'dubbed'), 'subtitles', random % 5 = 0,
    'bitrates', TRANSFORM(SEQUENCE(1, 12), i -> 235 * (1 + PMOD(HASH(random, i), 20))),
    'stalls', TRANSFORM(SEQUENCE(1, 3), i -> PMOD(HASH(random, i, 'stall'), 3000))
  )) AS payload
FROM sent
WHERE delay = 0 OR lateness = 0
