from django.apps import AppConfig


class ChannelsConfig(AppConfig):
    name = "channels_app"
    verbose_name = "Channels"
    default_auto_field = "django.db.models.BigAutoField"
