from django.apps import AppConfig
from django.db.models.signals import post_migrate


class MemoryConfig(AppConfig):
    name = "memory_app"
    verbose_name = "Memory"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from memory_app.index import create_indexes

        post_migrate.connect(create_indexes, sender=self, dispatch_uid="memory_full_text_index")
