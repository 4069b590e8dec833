
from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('channels_app', '0002_send_the_rest_once'),
    ]

    operations = [
        migrations.RemoveField(
            model_name='channelstate',
            name='offset',
        ),
    ]
