from django.apps import AppConfig


class OpsConfig(AppConfig):
    name = "nahida.ops"
    label = "ops"
    verbose_name = "Operation"
