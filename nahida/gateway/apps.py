from django.apps import AppConfig


class GatewayConfig(AppConfig):
    name = "nahida.gateway"
    verbose_name = "Gateway"
    default_auto_field = "django.db.models.BigAutoField"
