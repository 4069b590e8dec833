from django.apps import AppConfig


class LegacyConfig(AppConfig):
    name = "nahida.legacy"
    label = "legacy"
