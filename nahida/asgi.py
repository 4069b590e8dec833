import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nahida.settings")
os.environ.setdefault("NAHIDA_ROLE", "web")

application = get_asgi_application()
