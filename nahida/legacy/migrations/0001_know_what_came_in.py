
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('sessions_app', '0003_count_what_is_undone'),
    ]

    operations = [
        migrations.CreateModel(
            name='Source',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=64, unique=True)),
                ('path', models.TextField()),
                ('mark', models.CharField(max_length=64)),
                ('schema_version', models.PositiveIntegerField(null=True)),
                ('turns_to', models.BigIntegerField(default=0)),
                ('ranges', models.JSONField(default=list)),
                ('counts', models.JSONField(default=dict)),
                ('started_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('finished_at', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='Imported',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=16)),
                ('old_id', models.CharField(help_text='evidence: it never follows a rename', max_length=1000)),
                ('object_pk', models.BigIntegerField(null=True)),
                ('session', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='sessions_app.session')),
                ('source', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='rows', to='legacy.source')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('source', 'kind', 'old_id'), name='imported_once_from_a_source')],
            },
        ),
    ]
