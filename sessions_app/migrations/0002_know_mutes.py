
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0001_keep_chats_and_lanes'),
    ]

    operations = [
        migrations.AddField(
            model_name='chat',
            name='muted_until',
            field=models.DateTimeField(blank=True, help_text='we hear this chat but may not write to it until then', null=True),
        ),
    ]
