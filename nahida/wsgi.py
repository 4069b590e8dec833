import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nahida.settings")
os.environ.setdefault("NAHIDA_ROLE", "web")

application = get_wsgi_application()
