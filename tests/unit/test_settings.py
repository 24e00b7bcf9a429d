"""Defaults < file < environment < flags, and what is said of mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dalsegno.errors import SettingsError, UnknownName
from dalsegno.iceberg.catalogs import open_catalog, spark_configuration
from dalsegno.settings import ChannelType, Encryption, Settings, load


def written(folder: Path, text: str, **environment: str) -> Settings:
    (folder / "dalsegno.toml").write_text(text, encoding="utf-8")
    return load(environment=environment, working_folder=folder)


def test_without_a_file_everything_is_in_one_folder(tmp_path: Path) -> None:
    settings = load(environment={}, working_folder=tmp_path)
    home = tmp_path.resolve() / ".dalsegno"
    assert settings.store == f"sqlite:///{home}/dalsegno.db"
    assert settings.catalogs["lake"].uri == f"sqlite:///{home}/catalog.db"
    assert settings.catalogs["lake"].warehouse == str(home / "warehouse")


def test_file_then_environment_then_flag(tmp_path: Path) -> None:
    assert written(tmp_path, "capture_days = 3").capture_days == 3
    assert written(tmp_path, "capture_days = 3", DALSEGNO_CAPTURE_DAYS="4").capture_days == 4
    flagged = load(environment={"DALSEGNO_CAPTURE_DAYS": "4"}, working_folder=tmp_path, capture_days=5)
    assert flagged.capture_days == 5


def test_the_nearest_file_counts(tmp_path: Path) -> None:
    written(tmp_path, 'change_namespace = "above"')
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    settings = load(environment={}, working_folder=below)
    assert (settings.change_namespace, settings.root) == ("above", tmp_path.resolve())


def test_secrets_come_from_the_environment(tmp_path: Path) -> None:
    text = '[catalogs.prod]\ntype = "rest"\nuri = "http://localhost"\nproperties = { token = "${TOKEN}" }'
    settings = written(tmp_path, text, TOKEN="s3cret")
    assert settings.catalog("prod").properties == {"token": "s3cret"}
    with pytest.raises(SettingsError, match=r"refer to \$\{TOKEN\}, which is not set"):
        written(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("capture_day = 3", "there is no setting 'capture_day'.*Did you mean 'capture_days'"),
        ("capture_days = 0", "expected a whole number above 0"),
        ('capture_days = "x"', "expected a whole number above 0"),
        ("store = 3", "expected a str"),
        ("not toml", "is not valid TOML"),
        ('[catalogs.a]\ntype = "nessie"\nuri = "x"', "expected one of sql, rest, hive, glue"),
        ('[catalogs.a]\ntype = "rest"', "needs a uri"),
        ('[catalogs.a]\nurl = "x"', "Did you mean 'uri'"),
        ('[catalogs."a b"]\nuri = "x"', "is a word of letters"),
        ('catalogs = "x"', "must hold one table per catalog"),
    ],
)
def test_mistakes_are_explained(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        written(tmp_path, text)


def test_a_missing_file_and_an_unknown_catalog(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="does not exist"):
        load(tmp_path / "none.toml", environment={})
    with pytest.raises(UnknownName, match="There is no catalog 'x'; the settings name lake"):
        load(environment={}, working_folder=tmp_path).catalog("x")


def test_one_definition_serves_both(tmp_path: Path) -> None:
    settings = written(
        tmp_path,
        """
        [catalogs.sqlite]
        uri = "sqlite:///c.db"
        warehouse = "wh"
        [catalogs.pg]
        uri = "postgresql://me:pw@db.example:5433/ice?sslmode=require"
        warehouse = "s3://bucket/wh"
        properties = { "s3.region" = "eu-west-1" }
        [catalogs.rest]
        type = "rest"
        uri = "http://localhost:8181"
        warehouse = "prod"
        spark = { "io-impl" = "x.Y" }
        [catalogs.glue]
        type = "glue"
        """,
    )
    folder = tmp_path.resolve()
    prefix = "spark.sql.catalog"
    sqlite = settings.catalog("sqlite")
    assert open_catalog(sqlite).pyiceberg_properties()["uri"] == f"sqlite:///{folder}/c.db"
    assert spark_configuration(sqlite)[f"{prefix}.sqlite.uri"] == f"jdbc:sqlite:{folder}/c.db"
    postgres = spark_configuration(settings.catalog("pg"))
    assert postgres[f"{prefix}.pg.uri"] == "jdbc:postgresql://db.example:5433/ice?sslmode=require"
    assert (postgres[f"{prefix}.pg.jdbc.user"], postgres[f"{prefix}.pg.jdbc.password"]) == ("me", "pw")
    assert postgres[f"{prefix}.pg.client.region"] == "eu-west-1"
    assert open_catalog(settings.catalog("pg")).pyiceberg_properties()["uri"].startswith("postgresql+psycopg://me:pw@")
    rest = spark_configuration(settings.catalog("rest"))
    assert (rest[f"{prefix}.rest.type"], rest[f"{prefix}.rest.warehouse"]) == ("rest", "prod")
    assert rest[f"{prefix}.rest.io-impl"] == "x.Y"
    assert open_catalog(settings.catalog("rest")).pyiceberg_properties()["snapshot-loading-mode"] == "all"
    assert spark_configuration(settings.catalog("glue"))[f"{prefix}.glue.type"] == "glue"


@pytest.mark.parametrize("address", ["file:/lake", "file:///lake", "s3://bucket/wh", "/lake"])
def test_an_address_is_no_relative_path(tmp_path: Path, address: str) -> None:
    settings = written(tmp_path, f'[catalogs.lake]\nuri = "sqlite:///c.db"\nwarehouse = "{address}"\n')
    assert settings.catalog("lake").warehouse == address


def test_what_steps_may_do(tmp_path: Path) -> None:
    settings = written(
        tmp_path,
        """
        pass_environment = ["AWS_*"]
        job_folders = ["../jobs", "/opt/jobs"]
        http_allow = ["10.0.0.0/8", "${PARTNER}"]
        [connections.shop]
        url = "sqlite:///shop.db"
        [connections.bank]
        url = "postgresql://reader:${PARTNER}@db/bank"
        """,
        PARTNER="partner.example.com",
    )
    folder = tmp_path.resolve()
    assert settings.pass_environment == ("AWS_*",)
    assert settings.job_folders == (str(folder.parent / "jobs"), "/opt/jobs")
    assert settings.http_allow == ("10.0.0.0/8", "partner.example.com")
    assert settings.connection("shop").url == f"sqlite:///{folder}/shop.db"
    assert settings.connection("bank").url == "postgresql://reader:partner.example.com@db/bank"
    assert "partner.example.com@" not in repr(settings)
    with pytest.raises(UnknownName, match="There is no connection 'shpo'; the settings name bank, shop"):
        settings.connection("shpo")
    environment = {"DALSEGNO_HTTP_ALLOW": "a.example, 10.0.0.0/8,", "DALSEGNO_LOG_LIMIT_MB": "2"}
    given = load(environment=environment, working_folder=tmp_path.parent)
    assert (given.http_allow, given.log_limit_mb) == (("a.example", "10.0.0.0/8"), 2)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('http_allow = "10.0.0.0/8"', "http_allow is '10.0.0.0/8', expected a list of texts"),
        ("job_folders = [1]", r"job_folders is \[1\], expected a list of texts"),
        ("connections = 1", r"\[connections\] must hold one table per connection"),
        ("[connections.a]\nuri = 'x'", r"\[connections.a\] must be a table with a url"),
        ("[connections.a]\nurl = 'x'\npassword = 'y'", "there is no setting 'password'"),
    ],
)
def test_wrong_settings_of_steps(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        written(tmp_path, text)


def test_notifications(tmp_path: Path) -> None:
    settings = written(
        tmp_path,
        """
        listen = "0.0.0.0:80"
        keep_runs_days = 7
        [notifications.ops]
        type = "slack"
        url = "${HOOK}"
        [notifications.on-call]
        url = "https://example.com/hook"
        headers = { Authorization = "Bearer ${HOOK}" }
        [notifications.mail]
        type = "email"
        host = "smtp.example.com"
        from = "dalsegno@example.com"
        to = "ada@example.com"
        user = "dalsegno"
        password = "${HOOK}"
        """,
        HOOK="https://hooks.example.com/T0",
    )
    assert (settings.listen, settings.keep_runs_days, settings.keep_logs_days) == ("0.0.0.0:80", 7, 30)
    ops, on_call, mail = (settings.notifications[name] for name in ("ops", "on-call", "mail"))
    assert (ops.type, ops.url) == (ChannelType.SLACK, "https://hooks.example.com/T0")
    assert on_call.type is ChannelType.WEBHOOK
    assert on_call.headers == {"Authorization": "Bearer https://hooks.example.com/T0"}
    assert (mail.sender, mail.to, mail.port) == ("dalsegno@example.com", ("ada@example.com",), 587)
    assert mail.encryption is Encryption.STARTTLS
    assert "hooks.example.com" not in repr(settings)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("notifications = 1", r"\[notifications\] must hold one table per channel"),
        ("[notifications]\nops = 1", r"\[notifications.ops\] must be a table, found 1"),
        ("[notifications.ops]\ntype = 'pager'", "type is 'pager', expected one of webhook, slack, email"),
        ("[notifications.ops]\nencryption = 'some'", "encryption is 'some', expected one of starttls, tls, none"),
        ("[notifications.ops]\nadress = 'x'", "there is no setting 'adress'"),
        ("[notifications.ops]", "a channel of type webhook needs 'url'"),
        ("[notifications.ops]\nurl = 'file:///etc/passwd'", "url must begin with https:// or http://"),
        ("[notifications.ops]\ntype = 'email'\nhost = 'x'", "a channel of type email needs 'from'"),
        ("[notifications.ops]\ntype = 'email'\nhost = 'x'\nfrom = 'y'", "a channel of type email needs 'to'"),
        ("keep_runs_days = 0", "keep_runs_days is 0, expected a whole number above 0"),
    ],
)
def test_wrong_notifications(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        written(tmp_path, text)
