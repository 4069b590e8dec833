"""Settings of the site. What an owner may set stands in nahida.toml and the environment; the rest is decided here."""

import os
import secrets
from pathlib import Path
from typing import Any

import dj_database_url

from nahida.config import ConfigError, data_dir, load

BASE_DIR = Path(__file__).resolve().parent.parent


def env_bool(name: str, *, default: bool) -> bool:
    text = os.environ.get(name, "").strip().lower()
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("0", "false", "no", "off"):
        return False
    if text == "":
        return default
    raise ConfigError([f"{name}={text}: is neither true nor false: write 1 or 0"])


def kept_secret(path: Path) -> str:
    """Return the secret kept in `path`, made at first use. Only its owner may read it."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    with os.fdopen(descriptor, "w") as file:
        file.write(secret := secrets.token_urlsafe(50))
    return secret


DATA_DIR = data_dir(os.environ)
DEBUG = env_bool("DJANGO_DEBUG", default=False)
SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY") or kept_secret(DATA_DIR / "secret_key")

NAHIDA = load(None, os.environ)
CHANNELS = NAHIDA.channels

# Which kind of process this is, as our own commands say: connections are kept differently in each.
ROLE = os.environ.get("NAHIDA_ROLE", "")

ALLOWED_HOSTS = list(NAHIDA.site.hosts)
SECURE_SITE = NAHIDA.site.url.startswith("https://")
CSRF_TRUSTED_ORIGINS = [NAHIDA.site.url]

INSTALLED_APPS = [
    "nahida.desk",
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "ninja",
    "django_q",
    "channels_app",
    "sessions_app",
    "memory_app",
    "scheduler_app",
    "nahida.ops",
    "nahida.gateway",
    "nahida.web",
    "nahida.legacy",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "nahida.urls"
ASGI_APPLICATION = "nahida.asgi.application"
WSGI_APPLICATION = "nahida.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]


def database() -> dict[str, Any]:
    """Return the one database. SQLite takes the write lock at BEGIN: a read that turns into a write never fails."""
    url = os.environ.get("DATABASE_URL") or f"sqlite:///{DATA_DIR / 'nahida.sqlite3'}"
    if not url.startswith(("sqlite:///", "postgres://", "postgresql://")):
        fix = "write sqlite:///FILE or postgres://USER:PASSWORD@HOST/NAME"
        raise ConfigError([f"DATABASE_URL: names no database that Nahida knows: {fix}"])
    config: dict[str, Any] = dict(dj_database_url.parse(url))
    if config["ENGINE"] == "django.db.backends.sqlite3":
        config["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,  # seconds: a writer may hold the lock for a few
            "init_command": "PRAGMA synchronous=NORMAL; PRAGMA secure_delete=ON",
        }
        # A file: an in-memory test database shares its cache and ignores the time-out.
        config["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
    elif ROLE == "web":
        # Each request has a thread of its own; kept connections would pile up without a pool.
        config["OPTIONS"] = {"pool": {"min_size": 2, "max_size": 16, "timeout": 10}}
    if ROLE == "worker":
        config["CONN_MAX_AGE"] = 600  # seconds; the queue's broker asks the database all the time
    return config


DATABASES = {"default": database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = os.environ.get("REDIS_URL", "")
CACHES: dict[str, Any] = {
    "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}

# A task may take as long as a turn (240 s) and a little more; a worker that is busy longer is killed.
TASK_TIMEOUT = 300
Q_CLUSTER: dict[str, Any] = {
    "name": "nahida",
    "workers": NAHIDA.workers.count,
    "queue_limit": NAHIDA.workers.count,
    "timeout": TASK_TIMEOUT,
    "retry": 2 * TASK_TIMEOUT + 60,  # its clock starts when a task is fetched, not when it runs
    "max_attempts": 1,
    "ack_failures": True,
    "save_limit": -1,  # success rows would be read back on every task
    "catch_up": False,
    "bulk": 1,
    "recycle": 200,
    "poll": 0.2,  # seconds
    "label": "Queue",
    **({"redis": REDIS_URL} if REDIS_URL else {"orm": "default"}),
}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "web:login"
LOGIN_REDIRECT_URL = "web:chat"
LOGOUT_REDIRECT_URL = "web:login"

LANGUAGE_CODE = "en"
TIME_ZONE = NAHIDA.site.time_zone
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
WHITENOISE_USE_FINDERS = True
MEDIA_ROOT = DATA_DIR / "media"  # never served as it lies there: it has no MEDIA_URL
# Files come in base64, four letters for three bytes, beside some text; routes without files take less.
DATA_UPLOAD_MAX_MEMORY_SIZE = NAHIDA.files.largest * 4 // 3 + 2_500_000

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SITE
SECURE_SSL_REDIRECT = SECURE_SITE
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]  # probes ask the process itself, not the proxy
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if SECURE_SITE else None
SECURE_HSTS_SECONDS = 31_536_000 if SECURE_SITE else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = SECURE_SITE
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"

# No proxy is trusted to name the caller's address.
NINJA_NUM_PROXIES = 0

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "httpx": {"level": "WARNING"},  # its request lines would show secrets in URLs
        "httpx2": {"level": "WARNING"},
        "openai": {"level": "WARNING"},
        "django-q": {"level": "WARNING"},  # it tells of every task, twice
    },
}

# Lightness and chroma of the admin's two colours, from 50 to 950.
GREY = (
    ("50", "98.5% .003"),
    ("100", "96.5% .005"),
    ("200", "92.5% .008"),
    ("300", "87% .01"),
    ("400", "70% .015"),
    ("500", "55% .018"),
    ("600", "44% .018"),
    ("700", "37% .017"),
    ("800", "27% .015"),
    ("900", "20.5% .012"),
    ("950", "15% .01"),
)
LEAF = (
    ("50", "98% .02"),
    ("100", "95% .04"),
    ("200", "90% .06"),
    ("300", "84% .09"),
    ("400", "74% .11"),
    ("500", "64% .12"),
    ("600", "54% .11"),
    ("700", "46% .1"),
    ("800", "39% .08"),
    ("900", "33% .06"),
    ("950", "24% .05"),
)
UNFOLD = {
    "SITE_TITLE": NAHIDA.site.name,
    "SITE_HEADER": NAHIDA.site.name,
    "SITE_URL": "nahida.desk.look.chat_page",
    "SITE_ICON": "nahida.desk.look.icon",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": "nahida.desk.look.icon"},
    ],
    "STYLES": ["nahida.desk.look.styles"],
    "COLORS": {
        "base": {step: f"oklch({tone} 155)" for step, tone in GREY},
        "primary": {step: f"oklch({tone} 152)" for step, tone in LEAF},
    },
    "SIDEBAR": {"show_search": True, "navigation": "nahida.desk.look.navigation"},
    "DASHBOARD_CALLBACK": "nahida.desk.dashboard.context",
}
