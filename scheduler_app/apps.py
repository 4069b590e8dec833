from django.apps import AppConfig


class SchedulerConfig(AppConfig):
    name = "scheduler_app"
    verbose_name = "Scheduled work"
    default_auto_field = "django.db.models.BigAutoField"
